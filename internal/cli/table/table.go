// Package table writes tables that fit a terminal of 100 columns.
package table

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Width is the most columns that a table takes, as long as its fixed columns let it.
const Width = 100

// gap lies between two columns.
const gap = "  "

// minShrunk is how far a column is cut at most.
const minShrunk = 8

// Column is one column of a table.
type Column struct {
	Title string
	// Shrink says where a cell may be cut when the table is too wide.
	Shrink Shrink
}

// Shrink is where a cell may be cut.
type Shrink int

// Fixed cells, such as ids, are never cut; the others lose their end, or their start.
const (
	Fixed Shrink = iota
	End
	Start
)

// Write writes a table. Columns are as wide as their widest cell; a table that would be wider than [Width] cuts
// columns that may shrink, the widest first.
func Write(w io.Writer, columns []Column, rows [][]string) error {
	widths := fit(columns, natural(columns, rows))
	titles := make([]string, len(columns))
	for i, column := range columns {
		titles[i] = column.Title
	}
	var b strings.Builder
	for _, row := range append([][]string{titles}, rows...) {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString(gap)
			}
			cell = cut(cell, widths[i], columns[i].Shrink)
			line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func natural(columns []Column, rows [][]string) []int {
	widths := make([]int, len(columns))
	for i, column := range columns {
		widths[i] = utf8.RuneCountInString(column.Title)
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	return widths
}

func fit(columns []Column, widths []int) []int {
	total := len(gap) * (len(widths) - 1)
	for _, width := range widths {
		total += width
	}
	for ; total > Width; total-- {
		widest := -1
		for i, column := range columns {
			if column.Shrink != Fixed && widths[i] > minShrunk && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// cut shortens text to at most width characters, with an ellipsis where something is missing.
func cut(text string, width int, where Shrink) string {
	runes := []rune(text)
	switch {
	case len(runes) <= width || where == Fixed:
		return text
	case where == Start:
		return "…" + string(runes[len(runes)-width+1:])
	default:
		return string(runes[:width-1]) + "…"
	}
}
