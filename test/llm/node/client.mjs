// Each line of the input is a request to make with the openai package. The output has a line for
// each event of a stream, and then one for the answer, the end of the stream, or the error.
import { createInterface } from 'node:readline';
import OpenAI from 'openai';

const say = (what) => console.log(JSON.stringify(what));

for await (const line of createInterface({ input: process.stdin })) {
  const { url, api, retries, params } = JSON.parse(line);
  const client = new OpenAI({ baseURL: url, apiKey: 'k', maxRetries: retries });
  try {
    const made = await (api === 'responses' ? client.responses : client.chat.completions).create(params);
    if (params.stream) {
      for await (const event of made) say({ event });
    }
    say({ done: params.stream ? {} : made });
  } catch (e) {
    const headers = Object.fromEntries(e.headers ?? []);
    say({ error: { class: e.constructor.name, status: e.status, code: e.code, message: e.message, headers } });
  }
}
