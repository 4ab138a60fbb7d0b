#!/bin/sh
case $$* in
"--version" | "-V") answer nvcc ;;
*) refuse "$$@" ;;
esac
