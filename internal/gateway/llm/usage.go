package llm

// What is of interest in a response. The vendors' names differ, so one tree has them all, and
// whoever answers is understood.
const (
	// Numbers of usage; cumulative wherever they are repeated.
	inTokens      id = iota + 1 // may or may not have those that were cached
	inFresh                     // of a message that has only begun
	inAdded                     // not in inTokens: the results of Gemini's tools
	cacheRead                   // not in inTokens
	cacheWrite                  // not in inTokens
	cachePart                   // in inTokens
	outTokens                   // of a whole answer
	outFresh                    // of a message that has only begun
	outSoFar                    // of an answer that is whole if it has a reason to end
	outAdded                    // not in outTokens: Gemini's thoughts
	reasoningPart               // in outTokens
	totalTokens
	numbers // how many there are

	someText
	anEnd // a reason to end
	aUsage
	someChoices
	someCandidates
	anIndex
	anID
	theModel
	theTime
	theType
	theBlock
	theSequence
)

var responseNodes = func() *node {
	details := at(0, "cached_tokens", at(cachePart), "reasoning_tokens", at(reasoningPart), "thinking_tokens", at(reasoningPart))
	usage := func(in, out id) *node {
		return at(aUsage,
			"prompt_tokens", at(in), "input_tokens", at(in), "total_tokens", at(totalTokens),
			"completion_tokens", at(out), "output_tokens", at(out),
			"prompt_tokens_details", details, "input_tokens_details", details,
			"completion_tokens_details", details, "output_tokens_details", details,
			"prompt_cache_hit_tokens", at(cachePart), // DeepSeek
			"cache_read_input_tokens", at(cacheRead), "cache_creation_input_tokens", at(cacheWrite))
	}
	text := at(someText)
	call := at(0, "name", text, "arguments", text, "input", deep(someText))
	call.put("function", call)
	piece := at(someText, // of a string, of a list of parts, or of an Anthropic delta
		"text", text, "thinking", text, "partial_json", text, "refusal", text, "input", deep(someText))
	message := at(0,
		"content", piece, "refusal", text, "reasoning_content", text, "reasoning", text,
		"tool_calls", call, "function_call", call)
	delta := at(someText, "text", text, "thinking", text, "partial_json", text, "stop_reason", at(anEnd))
	output := at(0, "content", piece, "summary", piece, "arguments", text, "name", text, "input", text)
	parts := at(0, "text", text, "functionCall", deep(someText), "executableCode", deep(someText))
	return at(0,
		"id", at(anID), "model", at(theModel), "modelVersion", at(theModel), "responseId", at(anID), "created", at(theTime),
		"type", at(theType), "index", at(theBlock), "sequence_number", at(theSequence),
		"usage", usage(inTokens, outTokens), "x_groq", at(0, "usage", usage(inTokens, outTokens)),
		"choices", at(someChoices,
			"index", at(anIndex), "finish_reason", at(anEnd), "text", text, "delta", message, "message", message),
		"content", piece, "stop_reason", at(anEnd), "delta", delta, "content_block", at(0, "text", text),
		"message", at(0, "id", at(anID), "model", at(theModel), "usage", usage(inFresh, outFresh)),
		"output", output,
		"response", at(0, "id", at(anID), "model", at(theModel), "created_at", at(theTime), "usage", usage(inTokens, outTokens)),
		"usageMetadata", at(0,
			"promptTokenCount", at(inFresh), "cachedContentTokenCount", at(cachePart), "toolUsePromptTokenCount", at(inAdded),
			"candidatesTokenCount", at(outSoFar), "thoughtsTokenCount", at(outAdded), "totalTokenCount", at(totalTokens)),
		"candidates", at(someCandidates,
			"index", at(anIndex), "finishReason", at(anEnd), "content", at(0, "parts", parts)))
}()

// tally is what has been seen of a response.
type tally struct {
	number [numbers]int64
	text   int64 // bytes of what the model wrote
	ends   int64 // reasons to end
	whole  bool  // the usage is that of the whole answer
}

// count adds a value; it is false if it is not about usage.
func (t *tally) count(v *value) bool {
	switch {
	case v.id < numbers:
		n := v.number()
		t.number[v.id] = max(t.number[v.id], n)
		t.whole = t.whole || n > 0 && (v.id == inTokens || v.id == outTokens)
	case v.id == someText:
		if v.kind == '"' {
			t.text += v.size
		}
	case v.id == anEnd:
		if v.kind == '"' {
			t.ends++
		}
	default:
		return false
	}
	return true
}

// used is the usage, as far as it is known. Text that has been seen counts unless the vendor
// has counted it.
func (t *tally) used(input, text int64) (u Usage, known bool) {
	n := &t.number
	u.Input = max(n[inTokens], n[inFresh])
	u.Output = max(n[outTokens], n[outFresh], n[outSoFar])
	if u.Input == 0 && u.Output == 0 {
		u.Input = n[totalTokens]
	}
	u.Input += n[inAdded] + n[cacheRead] + n[cacheWrite]
	u.Output += n[outAdded]
	u.Cached = min(max(n[cachePart], n[cacheRead]), u.Input)
	u.Reasoning = min(max(n[reasoningPart], n[outAdded]), u.Output)
	if u.Input+u.Output+text == 0 {
		return Usage{}, false
	}
	if u.Input == 0 {
		u.Input = input
	}
	ended := t.ends > 0 && n[outSoFar]+n[outAdded] > 0
	if !t.whole && !ended {
		u.Output = max(u.Output, textTokens(text))
	}
	u.Input, u.Output = clamp(u.Input), clamp(u.Output)
	return u, true
}
