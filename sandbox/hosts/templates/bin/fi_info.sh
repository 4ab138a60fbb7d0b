#!/bin/sh
case $$* in
"-p efa" | "-p efa "*) answer fi_info ;;
*) refuse "$$@" ;;
esac
