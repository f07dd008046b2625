// Package figures turns what a benchmark measured into figures: series with median, minimum and maximum, percentiles,
// ratios taken round by round, the bars that ratios have to meet, and their two forms in print, lines and JSON.
package figures
