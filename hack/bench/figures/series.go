package figures

import (
	"math"
	"slices"
)

// Series is one figure measured several times, in the order of the rounds.
type Series []float64

// Median is the middle value, of an even number the mean of the two; 0 of none.
func (s Series) Median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Min is the smallest value, 0 of none.
func (s Series) Min() float64 {
	if len(s) == 0 {
		return 0
	}
	return slices.Min(s)
}

// Max is the largest value, 0 of none.
func (s Series) Max() float64 {
	if len(s) == 0 {
		return 0
	}
	return slices.Max(s)
}

// Ratios divides round by round: what ran next to each other in time is compared with each other. The longer series is
// cut; a divisor of 0 gives a ratio of 0.
func Ratios(over, under Series) Series {
	ratios := make(Series, min(len(over), len(under)))
	for i := range ratios {
		if under[i] != 0 {
			ratios[i] = over[i] / under[i]
		}
	}
	return ratios
}

// Quantile is the smallest value that a share q (0 to 1) of all values does not exceed (nearest rank); 0 of none.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
