#!/bin/sh
# Prints mean and median of a column of a CSV file: report.sh FILE COLUMN
. ./stats.sh
. ./csv.sh

column "$2" < "$1" > /tmp/report.$$
printf 'mean   %s\n' "$(mean < /tmp/report.$$)"
printf 'median %s\n' "$(median < /tmp/report.$$)"
rm -f /tmp/report.$$
