// Package units prints quantities for people.
package units

import "fmt"

// Bytes prints a size with the largest binary unit that it reaches, to four digits: 512 B, 1.5 KiB, 7.25 GiB.
func Bytes(n int64) string {
	const digits = "%.4g %s"
	switch {
	case n >= 1<<30:
		return fmt.Sprintf(digits, float64(n)/(1<<30), "GiB")
	case n >= 1<<20:
		return fmt.Sprintf(digits, float64(n)/(1<<20), "MiB")
	case n >= 1<<10:
		return fmt.Sprintf(digits, float64(n)/(1<<10), "KiB")
	}
	return fmt.Sprintf("%d B", n)
}
