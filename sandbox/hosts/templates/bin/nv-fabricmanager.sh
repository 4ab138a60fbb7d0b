#!/bin/sh
case $$* in
"--version" | "-v") answer nv-fabricmanager ;;
*) refuse "$$@" ;;
esac
