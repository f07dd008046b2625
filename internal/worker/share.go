package worker

// demand is what the last looks at both sources have shown.
type demand struct {
	// due: there were more due executions than were asked for; messages: likewise.
	due, messages bool
}

// divide shares free slots between due executions and messages. poll says that it is time to look for due executions;
// turn alternates from one division to the next. Both sources get a share whenever both have more than enough, and one
// that shows little keeps one slot to look with, so that what arrives there is seen.
func divide(free int, poll bool, d demand, turn bool) (due, messages int) {
	if free <= 0 {
		return 0, 0
	}
	if !d.due {
		if !poll {
			return 0, free
		}
		if !d.messages {
			return free, 0 // What is not due is left to messages, at once.
		}
		due = (free + 1) / 2
		return due, free - due
	}
	if free == 1 {
		if turn {
			return 1, 0
		}
		return 0, 1
	}
	if d.messages {
		due = free / 2
		if turn {
			due = (free + 1) / 2
		}
		return due, free - due
	}
	return free - 1, 1
}
