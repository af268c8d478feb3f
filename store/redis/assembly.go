package redis

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/weirhq/weir"
)

// assembly puts a script together. A part may have blocks, which begin with a line
// such as
//
//	--: look
//
// and work on the script's locals. Where a line says
//
//	--> look
//
// the block is used: pasted there, or called. A call of a function, and a local that
// a function shares with others, cost more than most of what these blocks do.
//
// In a script of singles, what is in tables otherwise is in locals.
type assembly struct {
	form   form
	out    strings.Builder
	blocks map[string]string // that are pasted

	inlineSteps     bool // judge, decide, commit and answer
	inlineAlgorithm bool // what an algorithm does: there is only one
}

// inLocals are the names of what is in tables otherwise.
var inLocals = strings.NewReplacer("FRESH[k]", "oldFresh", "CHANGED[k]", "changed", "A[k]", "oldA", "B[k]", "oldB")

var ofLimit = regexp.MustCompile(`\bc\.(\w+)`)

var (
	beginBlock = regexp.MustCompile(`(?m)^--: (\w+)\n`)
	useBlock   = regexp.MustCompile(`(?m)^ *--> (\w+)\n`)
)

// doings are the blocks of an algorithm. Not all have those after the first three.
var doings = []string{"look", "charge", "wait", "hold", "tail"}

// add appends a part; with algorithms, it is the arithmetic of those.
func (a *assembly) add(text string, algorithms []weir.Algorithm) {
	if a.form == singles {
		text = ofLimit.ReplaceAllString(inLocals.Replace(text), "c_$1")
	}
	marks := beginBlock.FindAllStringSubmatchIndex(text, -1)
	first := len(text)
	if len(marks) > 0 {
		first = marks[0][0]
	}
	a.out.WriteString(a.expand(text[:first]) + "\n")
	var made []string
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		name, body := text[m[2]:m[3]], text[m[1]:end]
		inline := a.inlineSteps
		if len(algorithms) > 0 {
			inline = a.inlineAlgorithm
		}
		if inline {
			a.blocks[name] = body
			continue
		}
		function := name
		if len(algorithms) > 0 {
			function = fmt.Sprintf("%s%d", name, algorithms[0])
			made = append(made, name+" = "+function)
		}
		fmt.Fprintf(&a.out, "local function %s()\n%send\n", function, a.expand(body))
	}
	for _, algorithm := range algorithms {
		if len(made) > 0 {
			fmt.Fprintf(&a.out, "ALGORITHM[%d] = { %s }\n", algorithm, strings.Join(made, ", "))
		}
	}
}

// expand puts blocks, or calls of them, where they are used.
func (a *assembly) expand(text string) string {
	return useBlock.ReplaceAllStringFunc(text, func(line string) string {
		name := useBlock.FindStringSubmatch(line)[1]
		body, pasted := a.blocks[name]
		of := 0 // an algorithm
		for i, doing := range doings {
			if doing == name {
				of = i + 1
			}
		}
		switch {
		case pasted:
			return "do\n" + a.expand(body) + "end\n"
		case of > 0 && a.inlineAlgorithm:
			return "" // it has no such thing
		case of > 3:
			return fmt.Sprintf("if c.algorithm.%s then c.algorithm.%s() end\n", name, name)
		case of > 0:
			return fmt.Sprintf("c.algorithm.%s()\n", name)
		}
		return name + "()\n"
	})
}
