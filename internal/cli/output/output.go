// Package output holds the flag -o of relayops commands: text for people, json for programs.
package output

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Format is text or json. It implements pflag.Value.
type Format string

// The formats.
const (
	Text Format = "text"
	JSON Format = "json"
)

// Add adds the flag -o, --output to a command.
func Add(cmd *cobra.Command) *Format {
	format := Text
	cmd.Flags().VarP(&format, "output", "o", "output format: text or json")
	return &format
}

func (f *Format) String() string { return string(*f) }

// Set implements pflag.Value.
func (f *Format) Set(text string) error {
	switch format := Format(text); format {
	case Text, JSON:
		*f = format
		return nil
	default:
		return fmt.Errorf("found %q, allowed: text or json", text)
	}
}

// Type implements pflag.Value.
func (f *Format) Type() string { return "format" }

// WriteJSON writes a document, indented.
func WriteJSON(w io.Writer, document any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(document)
}
