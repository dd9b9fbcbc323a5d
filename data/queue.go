package data

// queue is a binary heap: pop gives the element that is before all others. before must be a total order of what is in it, else which of two
// equals comes first would depend on how they got there.
type queue[T interface{ before(T) bool }] []T

func (q *queue[T]) push(x T) {
	*q = append(*q, x)
	s := *q
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s[i].before(s[up]) {
			break
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

func (q *queue[T]) pop() T {
	s := *q
	top, last := s[0], len(s)-1
	s[0] = s[last]
	s = s[:last]
	*q = s
	for i := 0; ; {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if s[child].before(s[first]) {
				first = child
			}
		}
		if first == i {
			return top
		}
		s[i], s[first] = s[first], s[i]
		i = first
	}
}
