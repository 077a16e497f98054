package policy

// contract lists the rules of a module that the engine reads. What isn't here, and isn't used by one that is, is
// refused: it would do nothing.
//
// All of them are partial sets. The ones that aren't supported yet are refused by name and not ignored, because a
// policy that counts on them would allow what its author wants held back.
var contract = []contractRule{
	{name: "deny", supported: true},
	{name: "warn", supported: true},
	{name: "hold"},
	{name: "mutate"},
	{name: "quota"},
}

type contractRule struct {
	name      string
	supported bool
}
