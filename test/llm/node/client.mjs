// Each line of the input is a request to make with the package openai or @anthropic-ai/sdk, and after how many events to leave. The output has a line for
// each event of a stream, and then one for the answer, the end of the stream, or the error.
import { createInterface } from 'node:readline';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

const say = (what) => console.log(JSON.stringify(what));

for await (const line of createInterface({ input: process.stdin })) {
  let { url, api, retries, params, leave } = JSON.parse(line);
  const options = { apiKey: 'k', maxRetries: retries };
  const openai = () => new OpenAI({ ...options, baseURL: url + '/v1' });
  const resource = { chat: () => openai().chat.completions, responses: () => openai().responses, messages: () => new Anthropic({ ...options, baseURL: url }).messages };
  try {
    const made = await resource[api]().create(params);
    if (params.stream) {
      for await (const event of made) {
        say({ event });
        if (--leave === 0) break; // which ends the request
      }
    }
    say({ done: params.stream ? {} : made });
  } catch (e) {
    const headers = Object.fromEntries(e.headers ?? []);
    say({ error: { class: e.constructor.name, status: e.status, code: e.code, message: e.message, headers } });
  }
}
