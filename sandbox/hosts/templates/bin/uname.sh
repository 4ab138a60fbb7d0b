#!/bin/sh
case $${1:--s} in
-s) answer uname/s ;;
-r) answer uname/r ;;
-m) answer uname/m ;;
-n) answer uname/n ;;
-a) answer uname/a ;;
-srm) answer uname/srm ;;
*) refuse "$$@" ;;
esac
