package process_test

// specArguments and specEnvironment tell a program where its specification is.
func specArguments(path string) []string { return []string{"--spec", path} }

func specEnvironment(string) []string { return nil }
