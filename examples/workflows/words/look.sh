#!/bin/sh
# Counts the words of each file, and fails if one is empty.
for file in "$@"; do
    test -s "$file" || exit 1
    wc -w "$file"
done
