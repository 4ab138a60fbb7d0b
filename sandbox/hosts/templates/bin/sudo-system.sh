#!/bin/sh
exec $SUDO "$$@"
