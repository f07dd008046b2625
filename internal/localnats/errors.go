package localnats

import "fmt"

// PortTakenError says that something else listens at the port.
type PortTakenError struct{ Port int }

func (p *PortTakenError) Error() string {
	return fmt.Sprintf("NATS cannot listen at 127.0.0.1:%d: the port is taken; stop what listens there, "+
		"or choose another one", p.Port)
}

// InUseError says that another process runs a server on the same directory.
type InUseError struct {
	Dir string
	// PID of that process, 0 if it is not known.
	PID int
}

func (i *InUseError) Error() string {
	return fmt.Sprintf("the NATS store %s is in use by process %d: stop it, or choose another directory", i.Dir, i.PID)
}

// DiskFullError says that JetStream has no room for its files.
type DiskFullError struct {
	Dir string
	// FreeBytes that the file system has left.
	FreeBytes uint64
}

func (d *DiskFullError) Error() string {
	return fmt.Sprintf("JetStream has no room: %d MiB are free on the disk of %s, it needs %d MiB; "+
		"make room, or choose another directory", d.FreeBytes>>20, d.Dir, minFreeBytes>>20)
}

// ImpairedError says that JetStream takes no messages, for another reason than a full disk.
type ImpairedError struct {
	Dir string
	// Reason is the server's own.
	Reason string
}

func (i *ImpairedError) Error() string {
	return fmt.Sprintf("JetStream on %s takes no messages until it is restarted: %s", i.Dir, i.Reason)
}
