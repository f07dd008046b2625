package figures

// Machine says where a run was taken: figures of two machines, or of one machine at two hours, are not comparable.
type Machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	MemoryMiB  int64  `json:"memoryMiB"`
	Kernel     string `json:"kernel"`
	Go         string `json:"go"`
	PostgreSQL string `json:"postgresql"`
	NATS       string `json:"nats"`
}
