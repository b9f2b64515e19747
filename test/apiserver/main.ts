/**
 * Runs the API server for tests manually, until interrupted:
 *
 *     sh scripts/node.sh test/apiserver/main.ts [--port 6443] [--kubeconfig-out FILE] [--node-kubeconfig-out FILE --node NAME]
 */
import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { TestApiServer } from "./server.ts";

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "6443" },
    "kubeconfig-out": { type: "string" },
    "node-kubeconfig-out": { type: "string" },
    node: { type: "string", default: "node1" },
  },
});

const server = await TestApiServer.start({ port: Number(values.port) });
console.log(`API server for tests: ${server.url}`);
if (values["kubeconfig-out"] !== undefined) {
  await writeFile(values["kubeconfig-out"], server.kubeconfig(), { mode: 0o600 });
  console.log(`administrator: kubectl --kubeconfig ${values["kubeconfig-out"]}`);
}
if (values["node-kubeconfig-out"] !== undefined) {
  const credentials = server.credentials(`system:node:${values.node}`, ["system:nodes"]);
  await writeFile(values["node-kubeconfig-out"], server.kubeconfig(credentials), { mode: 0o600 });
  console.log(`node ${values.node}: ${values["node-kubeconfig-out"]}`);
}
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    void server[Symbol.asyncDispose]().then(() => process.exit(0));
  });
}
