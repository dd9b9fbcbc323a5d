package cpu

import (
	"sort"

	"github.com/vktrain/vktrain/graph"
)

// stage is what runs between two barriers of the executor: a kernel that spreads its own work, or the tasks of all other nodes that the plan
// has no barrier between, as one list.
type stage struct {
	tasks int
	task  func(worker, i int)
	node  int // of whole
	whole func()
}

// place is the node that a worker runs, on a cache line of its own.
type place struct {
	node int
	_    [120]byte
}

// stage makes the stages of the plan's groups.
func (e *executable) stage(plan *graph.Plan) {
	e.stages = nil
	var group []int // nodes that share a list of tasks
	end := func() {
		if len(group) > 0 {
			e.stages = append(e.stages, e.merged(group))
		}
		group = nil
	}
	for i, k := range e.kernels {
		if plan.Barrier(i) {
			end()
		}
		if k.whole != nil {
			e.stages = append(e.stages, *e.single(i, k))
			continue
		}
		group = append(group, i)
	}
	end()
}

// single is the stage of one node.
func (e *executable) single(node int, k kernel) *stage {
	if k.whole != nil {
		return &stage{node: node, whole: k.whole}
	}
	s := e.merged([]int{node})
	return &s
}

// merged is the stage of several nodes that may run at the same time.
func (e *executable) merged(nodes []int) stage {
	ends := make([]int, len(nodes)) // tasks of this node and those before
	tasks := 0
	for j, node := range nodes {
		tasks += e.kernels[node].tasks
		ends[j] = tasks
	}
	return stage{tasks: tasks, task: func(worker, i int) {
		j := 0
		if len(ends) > 1 {
			j = sort.SearchInts(ends, i+1)
		}
		if j > 0 {
			i -= ends[j-1]
		}
		node := nodes[j]
		e.at[worker].node = node
		e.kernels[node].task(worker, i)
	}}
}

func (e *executable) runStage(s *stage) {
	if s.whole == nil {
		e.b.pool.For(s.tasks, s.task)
		return
	}
	for i := range e.at {
		e.at[i].node = s.node
	}
	s.whole()
}
