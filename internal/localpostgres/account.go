package localpostgres

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is who the server runs as. PostgreSQL refuses to run as root.
type account struct {
	name       string
	credential *syscall.Credential // nil: as this process
}

func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(found.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(found.Gid, 10, 32)
		if errUID != nil || errGID != nil || uid == 0 {
			continue
		}
		return account{name: name, credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return account{}, errors.New("PostgreSQL refuses to run as root, and there is neither a user postgres nor " +
		"a user nobody to run it as")
}

// own makes dir, and hands it to the account.
func (a account) own(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	if a.credential == nil {
		return nil
	}
	if err := os.Chown(dir, int(a.credential.Uid), int(a.credential.Gid)); err != nil {
		return fmt.Errorf("hand %s to user %s: %w", dir, a.name, err)
	}
	return nil
}

// Reachable reports whether the server's account can get to dir: every directory above it must let others through.
// Only root, whose server runs as somebody else, has to ask.
func Reachable(dir string) (bool, error) {
	who, err := serverAccount()
	if err != nil || who.credential == nil {
		return err == nil, err
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return false, fmt.Errorf("make %s absolute: %w", dir, err)
	}
	for parent := filepath.Dir(absolute); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err == nil && info.Mode().Perm()&0o001 == 0 && !ownedBy(info, who.credential) {
			return false, nil
		}
		if parent == filepath.Dir(parent) {
			return true, nil
		}
	}
}

func ownedBy(info os.FileInfo, who *syscall.Credential) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == who.Uid && info.Mode().Perm()&0o100 != 0
}
