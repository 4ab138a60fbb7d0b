#!/bin/sh
case $$* in
"--version" | "-v") answer dcgmi ;;
*) refuse "$$@" ;;
esac
