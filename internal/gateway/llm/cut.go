package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// shape is how a stream looks.
type shape uint8

const (
	nothing shape = iota
	chunks        // OpenAI's chat completions
	responses
	messages
	candidates
)

// origin is what the events of a stream say of themselves, so that one more can be written.
type origin struct {
	shape    shape
	id       string
	model    string
	created  int64
	last     int64 // the highest index of a choice
	sequence int64
	block    int64 // of Anthropic's messages: what is under way
	open     bool
}

func (o *origin) see(v *value) {
	switch v.id {
	case anID:
		if o.id == "" && v.kind == '"' {
			o.id = string(v.text)
		}
	case theModel:
		if o.model == "" && v.kind == '"' {
			o.model = string(v.text)
		}
	case theTime:
		o.created = v.number()
	case anIndex:
		o.last = max(o.last, min(v.number(), maxChoices-1))
	case theSequence:
		o.sequence = v.number()
	case someCandidates:
		o.shape = candidates
	}
}

// maxChoices bounds the events that end a stream.
const maxChoices = 128

// end is told what an event was.
func (o *origin) end(e *event) {
	switch {
	case e.choices:
		o.shape = chunks
	case e.kind == typeResponse:
		o.shape = responses
	case e.kind == typeMessage:
		o.shape = messages
	case e.kind == typeBlock:
		o.block, o.open = e.block, true
	case e.kind == typeBlockStop:
		o.open = false
	}
}

// closing ends the stream as the API does when the model has reached the client's own limit.
func (w *Watch) closing() []byte {
	var b bytes.Buffer
	o := &w.origin
	u, _ := w.Used()
	data := func(kind, format string, a ...any) {
		if kind != "" {
			fmt.Fprintf(&b, "event: %s\n", kind)
		}
		fmt.Fprintf(&b, "data: "+format+"\n\n", a...)
	}
	switch o.shape {
	case chunks:
		head := fmt.Sprintf(`"id":%s,"object":"chat.completion.chunk","created":%d,"model":%s`, quoted(o.id), o.created, quoted(o.model))
		for i := range o.last + 1 {
			data("", `{%s,"choices":[{"index":%d,"delta":{},"finish_reason":"length"}]}`, head, i)
		}
		if w.request.asked {
			data("", `{%s,"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, head, u.Input, u.Output, u.Input+u.Output)
		}
		data("", "[DONE]")
	case responses:
		data("response.incomplete", `{"type":"response.incomplete","sequence_number":%d,"response":{"id":%s,"object":"response","created_at":%d,"model":%s,`+
			`"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"error":null,"output":[],`+
			`"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}}}`,
			o.sequence+1, quoted(o.id), o.created, quoted(o.model), u.Input, u.Cached, u.Output, u.Reasoning, u.Input+u.Output)
	case messages:
		if o.open {
			data("content_block_stop", `{"type":"content_block_stop","index":%d}`, o.block)
		}
		data("message_delta", `{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":%d}}`, u.Output)
		data("message_stop", `{"type":"message_stop"}`)
	case candidates:
		b.WriteString(`data: {"candidates":[`)
		for i := range o.last + 1 {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"MAX_TOKENS","index":%d}`, i)
		}
		fmt.Fprintf(&b, `],"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d},"modelVersion":%s,"responseId":%s}`+"\r\n\r\n",
			u.Input, u.Output, u.Input+u.Output, quoted(o.model), quoted(o.id))
	}
	return b.Bytes()
}

// quoted is a string in JSON.
func quoted(s string) []byte {
	b, _ := json.Marshal(s) // a string never fails
	return b
}
