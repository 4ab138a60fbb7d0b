#!/bin/sh
case " $$* " in
*" -J -b "* | *" -b -J "* | *" -J "*" -b "* | *" -b "*" -J "*) answer lsblk ;;
*) refuse "$$@" ;;
esac
