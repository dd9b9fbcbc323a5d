package vulkan

import (
	"context"
	"time"

	"github.com/vktrain/vktrain/backend"
	"github.com/vktrain/vktrain/graph"
)

// Options says which device Open takes and how it runs programs. The zero value takes the best real GPU.
type Options struct {
	// Device is an index in Devices, a UUID as DeviceInfo has it, or a part of a name that one device alone has. Empty takes the best device: discrete before
	// virtual before integrated, among equals the one with more memory.
	Device string
	// Software lets an empty Device fall back to a driver that runs on the CPU, when no GPU is there.
	Software bool
	// Validate turns on the Khronos validation layer with synchronization validation; what it says becomes an error of the
	// call that caused it. The environment variable VKTRAIN_VALIDATE=1 does the same.
	Validate bool
	// ValidateAccess is Validate with the layer's GPU-assisted checks: kernels are changed so that they tell of each access outside of a buffer. It is
	// slow. VKTRAIN_VALIDATE=access does the same.
	ValidateAccess bool
	// SubmitLimit is the estimated time after which a program is cut into another submission, so that no submission trips a
	// watchdog or freezes a display. After the second run of a program it is cut anew by the time that its submissions took, if the estimates
	// were off by more than a factor of two. 0 is DefaultSubmitLimit; a software driver has no watchdog and is never cut by default.
	// Negative: never cut.
	SubmitLimit time.Duration
	// Tuning, where it is not nil, lets the backend measure kernels and choose by that; see Tuning. Nil: it chooses by rule.
	Tuning *Tuning
	// Nice keeps a display responsive: programs are cut at NiceSubmitLimit where SubmitLimit says nothing, on any device, and each submission waits
	// until the one before it is done and a millisecond has passed.
	Nice bool
	// FloorOnly hides every optional feature of the device, so that kernels run as on the least device they support.
	FloorOnly bool
	// CacheDir holds compiled pipelines between runs. Empty is the user's cache folder; NoCache keeps none.
	CacheDir string
	NoCache  bool
	// Limits makes the backend believe in a lesser device, for tests and bug reports: NAME=VALUE pairs with commas between them, as in
	// "shared=16K,invocations=128,range=64M,subgroup=off,16bit=off". What the device has less of anyway stays as it is. Empty: what the
	// environment variable VKTRAIN_LIMITS says.
	Limits string
	// Statistics lets PipelineStats be called, where the driver has VK_KHR_pipeline_executable_properties. Nothing is tested then: a driver
	// without hardware compiles, and computes nothing.
	Statistics bool
	// NoMatrices leaves cooperative matrices alone: they are not even asked for. The environment variable VKTRAIN_NO_COOPMAT=1 does the same.
	NoMatrices bool
	// Probe is a command that calls ProbeMain. Drivers have crashed when asked for their cooperative matrices, so they are asked in a process
	// of its own. Empty: this program, if its main has called ProbeMain; if not, cooperative matrices are not used.
	Probe []string
	// CheckAgain asks and tests the device anew, whatever is known from before.
	CheckAgain bool

	// Context ends what takes long before a program runs: when it is done no further kernel is compiled, tested or measured, and Open and Compile return
	// its error after the kernels in progress. What is compiled already runs on. Nil: nothing ends it.
	Context context.Context

	// Warn is told, once, of what the device was found to do wrong, and that VKTRAIN_LIMITS makes less of it. Nil: nobody is.
	Warn func(string)

	extensions   []string                                // of the device, beside those that kernels use
	tweak        func(*DeviceInfo)                       // tests narrow limits with it
	breaks       func(kernel string, code []byte) []byte // tests put mistakes into kernels with it
	probeTimeout time.Duration                           // 0: probeTimeout
}

// Tuning lets a backend choose among the kernels of an operator by what they were measured to take. The choices are kept beside the compiled pipelines,
// so that later runs have the same.
type Tuning struct {
	// Measure: when a program is compiled, its shapes that are new are measured, for some seconds. Drivers that run on the CPU, and backends that keep
	// nothing, leave that to Backend.Tune; until then the rule chooses.
	Measure bool
	// Conform checks the operator of a node, in its formats, on a backend, as conformance.CheckKernel does. A kernel that it refuses is never chosen;
	// what it said is kept too.
	Conform func(b backend.Backend, n *graph.Node) error
	// Progress is called before each measurement and at their end, if it is not nil.
	Progress func(done, total int)
	// Software: Measure holds for drivers that run on the CPU as well.
	Software bool
}

// DefaultSubmitLimit keeps a display usable; drivers reset a GPU after two seconds.
const DefaultSubmitLimit = 50 * time.Millisecond

// NiceSubmitLimit is half of a frame of a display that shows 60 a second.
const NiceSubmitLimit = 8 * time.Millisecond

// DeviceInfo describes a Vulkan device.
type DeviceInfo struct {
	Index    int          `json:"index"` // in Devices; "vulkan:0" on a command line
	Name     string       `json:"name"`
	Kind     backend.Kind `json:"-"`
	KindName string       `json:"kind"`
	Vendor   string       `json:"vendor"`
	VendorID uint32       `json:"vendor_id"`
	DeviceID uint32       `json:"device_id"`
	Driver   string       `json:"driver"` // name and version in the driver's own words
	API      string       `json:"api"`    // Vulkan version

	UUID          string `json:"uuid"`        // of the device, the same in every process
	DriverUUID    string `json:"driver_uuid"` // changes with the driver's build
	DriverVersion uint32 `json:"driver_version"`

	// Unusable says why vktrain cannot use the device; empty if it can.
	Unusable string `json:"unusable,omitempty"`

	Limits   Limits   `json:"limits"`
	Features Features `json:"features"`
	Heaps    []Heap   `json:"heaps"`
	// Unified: the host writes device memory directly, without staging.
	Unified bool `json:"unified_memory"`
	// Choices are the kernels that were measured to be the best, by this program's earlier runs; not in what Backend.Device tells.
	Choices []Choice `json:"choices,omitempty"`
	// Quirks are what was corrected of the above, because the driver is known to be wrong there.
	Quirks []Quirk `json:"quirks,omitempty"`
	// Failed are the operations and kernels that gave wrong results when they were tested, and are not used: name and result. Tested says that
	// the device's subgroup operations were tested. Open knows both; Devices what was found by an earlier one.
	Failed []string `json:"failed_self_tests,omitempty"`
	Tested bool     `json:"self_tested"`

	noMatrices bool // cooperative matrices may not be asked for
}

// Limits are the numbers that kernels and memory depend on, in bytes where not said otherwise.
type Limits struct {
	Invocations    uint32    `json:"max_workgroup_invocations"`
	GroupSize      [3]uint32 `json:"max_workgroup_size"`
	GroupCount     [3]uint32 `json:"max_workgroup_count"`
	Shared         uint32    `json:"max_shared_memory"`
	Bindings       uint32    `json:"max_storage_buffers"` // a kernel
	BindBytes      int64     `json:"max_storage_buffer_range"`
	AllocBytes     int64     `json:"max_memory_allocation"`
	PushBytes      uint32    `json:"max_push_constants"`
	Align          int64     `json:"storage_buffer_alignment"`
	AtomSize       int64     `json:"non_coherent_atom"`
	TimestampNanos float32   `json:"timestamp_period_ns"` // 0: no timestamps on the compute queue
}

// Features are the optional abilities that speed kernels up.
type Features struct {
	Storage16           bool     `json:"storage16"`
	Int16               bool     `json:"int16"`
	Float16             bool     `json:"float16"`
	Int8                bool     `json:"int8"`
	Float64             bool     `json:"float64"`
	Int64               bool     `json:"int64"`
	SubgroupSize        uint32   `json:"subgroup_size"`
	MinSubgroupSize     uint32   `json:"min_subgroup_size"`
	MaxSubgroupSize     uint32   `json:"max_subgroup_size"`
	SubgroupSizeControl bool     `json:"subgroup_size_control"`
	FullSubgroups       bool     `json:"full_subgroups"`
	SubgroupOps         []string `json:"subgroup_ops"`
	CooperativeMatrix   []string `json:"cooperative_matrix"`                   // shapes, as 16x16x16 f16*f16+f32
	MatrixProblem       string   `json:"cooperative_matrix_problem,omitempty"` // why a device that has the extension lists no shapes
	BFloat16            bool     `json:"bfloat16_matrix"`
	PipelineStatistics  bool     `json:"pipeline_statistics"`
	MemoryBudget        bool     `json:"memory_budget"`
	Portability         bool     `json:"portability_subset"` // not fully conformant: MoltenVK

	matrices []matrixShape // of CooperativeMatrix, those that kernels can use
}

// Heap is a pool of memory.
type Heap struct {
	Bytes       int64 `json:"bytes"`
	DeviceLocal bool  `json:"device_local"`
	Budget      int64 `json:"budget_bytes,omitempty"` // what the driver lets the process have (VK_EXT_memory_budget); 0 where it does not say
	Free        int64 `json:"free_bytes"`             // of the budget; Bytes where the driver does not say
}

// DeviceBytes is the size of the largest heap on the device.
func (d *DeviceInfo) DeviceBytes() int64 {
	var most int64
	for _, h := range d.Heaps {
		if h.DeviceLocal {
			most = max(most, h.Bytes)
		}
	}
	return most
}

// has tells whether a subgroup operation is supported.
func (f *Features) has(op string) bool {
	for _, o := range f.SubgroupOps {
		if o == op {
			return true
		}
	}
	return false
}

// caps is what lowerings see of a device.
func (d *DeviceInfo) caps(floorOnly bool) *deviceCaps {
	l, f := &d.Limits, &d.Features
	c := &deviceCaps{
		name: d.Name, kind: d.Kind, vendor: d.VendorID,
		maxInvocations: l.Invocations, maxGroupSize: l.GroupSize, maxGroups: l.GroupCount, sharedBytes: l.Shared, maxBindBytes: l.BindBytes,
		subgroupSize: f.SubgroupSize, minSubgroupSize: f.SubgroupSize, maxSubgroupSize: f.SubgroupSize,
	}
	if floorOnly {
		c.maxInvocations = floorInvocations
		c.sharedBytes = floorShared
		c.maxGroups = [3]uint32{65535, 65535, 65535}
		return c
	}
	c.subgroupVote, c.subgroupArith, c.subgroupBallot = f.has("vote"), f.has("arithmetic"), f.has("ballot")
	c.subgroupShuffle, c.subgroupClustered = f.has("shuffle"), f.has("clustered")
	c.subgroupSizeControl, c.fullSubgroups = f.SubgroupSizeControl, f.FullSubgroups
	if f.SubgroupSizeControl {
		c.minSubgroupSize, c.maxSubgroupSize = f.MinSubgroupSize, f.MaxSubgroupSize
	}
	c.storage16, c.int16, c.float16, c.int8 = f.Storage16, f.Int16, f.Float16, f.Int8
	c.matrices = f.matrices
	return c
}
