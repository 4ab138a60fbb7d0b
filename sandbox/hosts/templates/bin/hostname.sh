#!/bin/sh
answer hostname
