// Package near finds the words that were perhaps meant by one that is unknown.
package near

import (
	"cmp"
	"slices"
	"strings"
)

// Keys gives up to three known keys that were perhaps meant, the likeliest first: those with the same last part, and those
// within a few typing errors.
func Keys(key string, known []string) []string {
	type match struct {
		key  string
		cost int
	}
	last := func(k string) string { return k[strings.LastIndexByte(k, '.')+1:] }
	var found []match
	for _, k := range known {
		cost := min(editDistance(key, k), editDistance(last(key), last(k)))
		if cost <= max(1, len(last(key))/3) {
			found = append(found, match{k, cost})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return cmp.Compare(a.cost, b.cost) })
	var keys []string
	for _, m := range found[:min(3, len(found))] {
		keys = append(keys, m.key)
	}
	return keys
}

// editDistance counts the insertions, deletions, substitutions and swaps of neighbours that turn a into b (Damerau 1964, in the
// form that edits no part twice).
func editDistance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, prev, prev2 := rows[i%3], rows[(i+2)%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, prev[j]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
