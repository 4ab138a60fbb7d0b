#!/bin/sh
case $$* in
"-P -k -l") answer df ;;
*) refuse "$$@" ;;
esac
