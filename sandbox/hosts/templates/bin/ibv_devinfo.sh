#!/bin/sh
[ $$# -eq 0 ] || refuse "$$@"
answer ibv_devinfo
