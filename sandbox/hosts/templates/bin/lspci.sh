#!/bin/sh
case $$* in
"-Dnn" | "-D -nn" | "-nn -D") answer lspci ;;
*) refuse "$$@" ;;
esac
