#!/bin/sh
case $$* in
"" | status) answer timedatectl ;;
*) refuse "$$@" ;;
esac
