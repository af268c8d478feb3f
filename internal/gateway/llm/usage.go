package llm

import (
	"strings"

	"github.com/weirhq/weir/rule"
)

// What is of interest in a response. The vendors' names differ, so one tree has them all, and
// whoever answers is understood.
const (
	// Numbers of usage; cumulative wherever they are repeated.
	inTokens      id = iota + 1 // may or may not have those that were cached
	inPrompt                    // with those that were cached, unless the total says otherwise
	inFresh                     // of a message that has only begun
	inAdded                     // not in inTokens: the results of Gemini's tools
	cacheRead                   // not in inTokens
	cacheWrite                  // not in inTokens, for whatever time
	cacheWrite5m                // in cacheWrite
	cacheWrite1h                // in cacheWrite
	cachePart                   // in inTokens
	writePart                   // in inTokens
	inAudio                     // in inTokens
	inImage                     // in inTokens
	cachedAudio                 // in inAudio and in cachePart
	cachedImage                 // in inImage and in cachePart
	outTokens                   // of a whole answer
	outFresh                    // of a message that has only begun
	outSoFar                    // of an answer that is whole if it has a reason to end
	outAdded                    // not in outTokens: Gemini's thoughts
	reasoningPart               // in outTokens
	outAudio                    // in outTokens
	outImage                    // in outTokens
	totalTokens
	toolCalls
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
	anItem // of an output, by its type
	aTier  // of service

	// Gemini has lists of kinds and their numbers.
	aDetail
	aModality
	inDetail
	cachedDetail
	outDetail
	writeDetail // Bedrock's, of what was written to the cache for a time
)

var responseNodes = func() *node {
	inDetails := at(0, "cached_tokens", at(cachePart), "cache_write_tokens", at(writePart),
		"audio_tokens", at(inAudio), "image_tokens", at(inImage))
	outDetails := at(0, "reasoning_tokens", at(reasoningPart), "thinking_tokens", at(reasoningPart),
		"audio_tokens", at(outAudio), "image_tokens", at(outImage))
	usage := func(in, out id) *node {
		return at(aUsage,
			"prompt_tokens", at(inPrompt), "input_tokens", at(in), "total_tokens", at(totalTokens),
			"completion_tokens", at(out), "output_tokens", at(out),
			"prompt_tokens_details", inDetails, "input_tokens_details", inDetails,
			"completion_tokens_details", outDetails, "output_tokens_details", outDetails,
			"prompt_cache_hit_tokens", at(cachePart), // DeepSeek
			"inputTokens", at(in), "outputTokens", at(out), "totalTokens", at(totalTokens), // Bedrock
			"cacheReadInputTokens", at(cacheRead), "cacheWriteInputTokens", at(cacheWrite),
			"cacheDetails", at(aDetail, "ttl", at(aModality), "inputTokens", at(writeDetail)),
			"cache_read_input_tokens", at(cacheRead), "cache_creation_input_tokens", at(cacheWrite),
			"cache_creation", at(0, "ephemeral_5m_input_tokens", at(cacheWrite5m), "ephemeral_1h_input_tokens", at(cacheWrite1h)),
			"service_tier", at(aTier), "server_tool_use", at(0, "web_search_requests", at(toolCalls)))
	}
	kinds := func(list id) *node { return at(aDetail, "modality", at(aModality), "tokenCount", at(list)) }
	text := at(someText)
	call := at(0, "name", text, "arguments", text, "input", deep(someText))
	call.put("function", call)
	called, thought := at(0, "name", text, "input", deep(someText)), at(0, "text", text, "reasoningText", at(0, "text", text)) // by Bedrock
	piece := at(someText,                                                                                                      // of a string, of a list of parts, or of an Anthropic delta
		"text", text, "thinking", text, "partial_json", text, "refusal", text, "input", deep(someText), "toolUse", called, "reasoningContent", thought)
	message := at(0,
		"content", piece, "refusal", text, "reasoning_content", text, "reasoning", text,
		"tool_calls", call, "function_call", call)
	delta := at(someText, "text", text, "thinking", text, "partial_json", text, "stop_reason", at(anEnd), "toolUse", called, "reasoningContent", thought)
	output := at(0, "type", at(anItem), "content", piece, "summary", piece, "arguments", text, "name", text, "input", text,
		"message", at(0, "content", piece))
	parts := at(0, "text", text, "functionCall", deep(someText), "executableCode", deep(someText))
	return at(0,
		"service_tier", at(aTier), "id", at(anID), "model", at(theModel), "modelVersion", at(theModel), "responseId", at(anID), "created", at(theTime),
		"type", at(theType), "index", at(theBlock), "sequence_number", at(theSequence),
		"usage", usage(inTokens, outTokens), "x_groq", at(0, "usage", usage(inTokens, outTokens)),
		"stopReason", at(anEnd), "contentBlockIndex", at(theBlock), "start", at(0, "toolUse", called), "serviceTier", at(0, "type", at(aTier)),
		"choices", at(someChoices,
			"index", at(anIndex), "finish_reason", at(anEnd), "text", text, "delta", message, "message", message),
		"content", piece, "stop_reason", at(anEnd), "delta", delta, "content_block", at(0, "text", text),
		"message", at(0, "id", at(anID), "model", at(theModel), "usage", usage(inFresh, outFresh)),
		"output", output,
		"response", at(0, "service_tier", at(aTier), "id", at(anID), "model", at(theModel), "created_at", at(theTime), "usage", usage(inTokens, outTokens),
			"output", at(0, "type", at(anItem))),
		"usageMetadata", at(0,
			"promptTokenCount", at(inFresh), "cachedContentTokenCount", at(cachePart), "toolUsePromptTokenCount", at(inAdded),
			"candidatesTokenCount", at(outSoFar), "thoughtsTokenCount", at(outAdded), "totalTokenCount", at(totalTokens),
			"promptTokensDetails", kinds(inDetail), "cacheTokensDetails", kinds(cachedDetail), "candidatesTokensDetails", kinds(outDetail)),
		"candidates", at(someCandidates,
			"index", at(anIndex), "finishReason", at(anEnd), "content", at(0, "parts", parts)))
}()

// tally is what has been seen of a response.
type tally struct {
	number [numbers]int64
	text   int64 // bytes of what the model wrote
	ends   int64 // reasons to end
	whole  bool  // the usage is that of the whole answer; embeddings have none, and no text that counts instead
	below  bool  // a number of usage is below zero, so none is believed for the answer
	list   id    // someChoices or someCandidates, if there is such a list
	calls  int64 // in the output of this event
	tier   rule.ServiceTier
	tiered bool // the response tells its tier
	detail detail
}

// detail is one kind in a list of Gemini's. Its names are in any order.
type detail struct {
	list  id
	count int64
	kind  modality
}

type modality uint8

const (
	noModality modality = iota
	audio
	image
	hour // for which the cache keeps it
)

// parts are where the kinds of each list are counted. Other kinds cost as much as text.
var parts = [...][4]id{
	inDetail:     {audio: inAudio, image: inImage},
	cachedDetail: {audio: cachedAudio, image: cachedImage},
	outDetail:    {audio: outAudio, image: outImage},
	writeDetail:  {hour: cacheWrite1h},
}

// raise takes the highest value of a number, because they are repeated.
func (t *tally) raise(what id, n int64) { t.number[what] = max(t.number[what], n) }

// countDetail adds a value of a list of kinds.
func (t *tally) countDetail(v *value) {
	d := &t.detail
	switch v.id {
	case aDetail:
		if v.kind == '{' {
			*d = detail{}
		}
		return
	case aModality:
		switch strings.ToUpper(string(v.text)) {
		case "AUDIO":
			d.kind = audio
		case "IMAGE":
			d.kind = image
		case "1H":
			d.kind = hour
		}
	default:
		d.list, d.count = v.id, v.number()
	}
	if d.list != 0 && d.kind != noModality {
		t.raise(parts[d.list][d.kind], d.count)
	}
}

// countItem counts what the vendor bills for each call. Calls of the client's own functions are free.
func (t *tally) countItem(v *value) {
	switch string(v.text) {
	case "web_search_call", "file_search_call":
		t.calls++
		t.raise(toolCalls, t.calls)
	}
}

// count adds a value; it is false if it is not about usage.
func (t *tally) count(v *value) bool {
	switch {
	case v.id < numbers:
		n := v.number()
		t.below = t.below || len(v.text) > 0 && v.text[0] == '-'
		t.raise(v.id, n)
		t.whole = t.whole || n > 0 && v.id == outTokens
	case v.id == someText:
		if v.kind == '"' {
			t.text += v.size
		}
	case v.id == anEnd:
		if v.kind == '"' {
			t.ends++
		}
	case v.id == aTier:
		if v.kind == '"' {
			t.tier, t.tiered = rule.ParseServiceTier(string(v.text)), true
		}
	case v.id == anItem:
		t.countItem(v)
	case v.id >= aDetail:
		t.countDetail(v)
	default:
		return false
	}
	return true
}

// hasCache reports whether the tokens of the prompt have those that the cache is said to have read and written. Anthropic counts
// them apart. Proxies that speak OpenAI's language, such as LiteLLM, repeat Anthropic's numbers beside a sum.
func (t *tally) hasCache(cached, output int64) bool {
	prompt := t.number[inPrompt]
	return prompt > 0 && prompt >= cached && t.number[totalTokens] != prompt+cached+output
}

// used is the usage, as far as it is known. Text that has been seen counts unless the vendor
// has counted it.
func (t *tally) used(input, text int64) (u Usage, known bool) {
	n := &t.number
	u.Input = max(n[inTokens], n[inPrompt], n[inFresh])
	u.Output = max(n[outTokens], n[outFresh], n[outSoFar])
	if u.Input == 0 && u.Output == 0 {
		u.Input = n[totalTokens]
	}
	writes := max(n[cacheWrite], n[cacheWrite5m]+n[cacheWrite1h])
	if u.Input += n[inAdded]; !t.hasCache(n[cacheRead]+writes, u.Output) {
		u.Input += n[cacheRead] + writes
	}
	u.Output += n[outAdded]
	if n[totalTokens] == u.Input+u.Output+n[reasoningPart] {
		u.Output += n[reasoningPart] // some vendors, such as xAI, count it apart
	}
	u.Cached = max(n[cachePart], n[cacheRead])
	u.CacheWrite1h = n[cacheWrite1h]
	u.CacheWrite = max(writes-u.CacheWrite1h, n[writePart])
	u.AudioInput, u.ImageInput = max(0, n[inAudio]-n[cachedAudio]), max(0, n[inImage]-n[cachedImage])
	u.Reasoning = max(n[reasoningPart], n[outAdded])
	u.AudioOutput, u.ImageOutput = n[outAudio], n[outImage]
	u.ToolCalls, u.Tier = n[toolCalls], t.tier
	if u.Input+u.Output+text == 0 {
		return Usage{}, false
	}
	if u.Input == 0 {
		u.Input = input
	}
	ended := t.ends > 0 && n[outSoFar] > 0
	if !t.whole && !ended || t.below {
		u.Output = max(u.Output, textTokens(text))
	}
	u.Input, u.Output = clamp(u.Input), clamp(u.Output)
	u.Cached, u.Reasoning = min(u.Cached, u.Input), min(u.Reasoning, u.Output)
	return u, true
}
