package main

// trial is a result that knows how many cores others kept busy meanwhile.
type trial interface{ neighbours() float64 }

// tries is how often a trial is taken at most: a machine that is never quiet must not keep a run for ever.
const tries = 3

// undisturbed takes a trial, and takes it again if others used the machine too much. The last one counts whatever
// happened; the report names the neighbours of what counted.
func undisturbed[T trial](b *bench, take func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		result, err := take()
		if err != nil || result.neighbours() <= b.options.quiet || try == tries {
			return result, err
		}
		b.logf("others kept %.2f cores busy during this trial (more than %.2f): once more",
			result.neighbours(), b.options.quiet)
	}
}
