// Asks weir whether requests may pass, with another gRPC library than weir's own.
//
//   node check.mjs ADDRESS PROTO USER COUNT
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const [address, proto, user, count] = process.argv.slice(2);
const { weir } = grpc.loadPackageDefinition(loader.loadSync(proto, { keepCase: true, longs: Number, enums: String, defaults: true }));
const client = new weir.v1.Limiter(address, grpc.credentials.createInsecure());
const check = (request) =>
  new Promise((resolve, reject) =>
    client.Check(request, { deadline: Date.now() + 10_000 }, (error, answer) => (error ? reject(error) : resolve(answer))),
  );

for (let i = 0; i < Number(count); i++) {
  const { allowed, reason, rule, remaining } = await check({ user, path: "/api/items", attributes: { action: "post" } });
  console.log(JSON.stringify({ allowed, reason, rule, remaining }));
}
try {
  await check({ user, cost: -1 });
} catch (error) {
  console.log(grpc.status[error.code]);
}
client.close();
