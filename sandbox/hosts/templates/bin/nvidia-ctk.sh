#!/bin/sh
case $$* in
"--version" | "-v") answer nvidia-ctk ;;
*) refuse "$$@" ;;
esac
