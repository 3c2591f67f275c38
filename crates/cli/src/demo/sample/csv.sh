#!/bin/sh
# Reading of simple CSV files.

column() {
    awk -F, -v n="$1" 'NR > 1 { print $n }'
}
