// A server of MCP and its client, with the official SDK. Each line of the input is a call to make at an address; the
// output has the port of the server first, and then a line for each call.
import { createInterface } from 'node:readline';
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const say = (what) => console.log(JSON.stringify(what));

const sessions = new Map();
const http = createServer(async (req, res) => {
  let transport = sessions.get(req.headers['mcp-session-id']);
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    const server = new McpServer({ name: 'tools', version: '1.0.0' });
    for (const name of ['search', 'other']) {
      server.registerTool(name, { description: name }, () => ({ content: [{ type: 'text', text: 'found by ' + name }] }));
    }
    await server.connect(transport);
  }
  await transport.handleRequest(req, res);
});
http.listen(0, '127.0.0.1', () => say({ port: http.address().port }));

let client;
for await (const line of createInterface({ input: process.stdin })) {
  const { url, tool } = JSON.parse(line);
  try {
    if (!client) {
      client = new Client({ name: 'agent', version: '1.0.0' });
      await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    }
    const result = tool ? await client.callTool({ name: tool }) : await client.listTools();
    say({ text: result.content?.[0].text ?? result.tools.map((t) => t.name).join() });
  } catch (e) {
    say({ error: { code: e.code, message: e.message } });
  }
}
await client?.close();
process.exit(0); // or timers of the SDK would keep it
