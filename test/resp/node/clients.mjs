// Asks weir with each client and each version of RESP, and writes what it answers as a line
// of JSON. The arguments are the port and the token.
import { createClient } from 'redis';
import Redis from 'ioredis';

const [port, token] = process.argv.slice(1);

// Booleans, numbers and texts as they come; maps as objects.
const plain = (v) => {
  if (v instanceof Map) return Object.fromEntries([...v].map(([k, e]) => [k, plain(e)]));
  if (Array.isArray(v)) return v.map(plain);
  if (v && typeof v === 'object') return Object.fromEntries(Object.entries(v).map(([k, e]) => [k, plain(e)]));
  return v;
};

const open = {
  redis: async (version) => {
    const client = createClient({ socket: { host: '127.0.0.1', port: Number(port) }, password: token, RESP: version });
    await client.connect();
    return {
      call: (...words) => client.sendCommand(words),
      pipeline: (all) => Promise.all(all.map((words) => client.sendCommand(words))),
      close: () => client.close(),
    };
  },
  ioredis: async (version) => {
    const client = new Redis({ host: '127.0.0.1', port: Number(port), password: token, connectionName: 'tests', protocol: version, replyMapping: version === 3 ? 'resp3' : undefined });
    return {
      call: (...words) => client.call(...words),
      pipeline: async (all) => (await client.pipeline(all.map(([command, ...args]) => ['call', command, ...args])).exec()).map(([err, answer]) => {
        if (err) throw err;
        return answer;
      }),
      close: () => client.quit(),
    };
  },
};

for (const client of ['redis', 'ioredis']) {
  for (const version of [2, 3]) {
    const { call, pipeline, close } = await open[client](version);
    const key = `${client}-${version}`;
    const throttle = ['CL.THROTTLE', key, '2', '1', '60'];
    console.log(JSON.stringify({
      client,
      version,
      first: await call(...throttle),
      pipeline: await pipeline([throttle, throttle, throttle]),
      check: plain(await call('WEIR.CHECK', 'user', key, 'path', '/api/x')),
      error: await call('WEIR.CHECK', 'usr', 'alice').then(() => '', (err) => err.message),
      unknown: await call('GET', 'x').then(() => '', (err) => err.message),
    }));
    await close();
  }
}
