package event

// JSONBTextSize is jsonbText for the tests outside the package.
func JSONBTextSize(document string) int {
	size, _ := jsonbText([]byte(document))
	return size
}
