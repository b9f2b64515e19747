import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { createConnection } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { listenAt, noLimit } from "../../test/support/csi-registrar.ts";
import { systemClock } from "../linux/processes/clock.ts";
import { testDirectory } from "../linux/processes/testing.ts";
import { Registration } from "../ports/gen/pluginregistration/v1/api_pb.js";
import { serveGrpc } from "./server.ts";

const getInfo = "/pluginregistration.Registration/GetInfo";
const emptyMessage = Buffer.alloc(5);

/** The statuses of a request to a server: HTTP's, and gRPC's, which is missing from a response without one. */
async function statusesOf(headers: Readonly<Record<string, string>>): Promise<readonly unknown[]> {
  using directory = testDirectory();
  const socket = join(directory.path, "a socket");
  await using _server = await serveGrpc(
    (router) => router.service(Registration, { getInfo: () => ({ name: "plugin" }) }),
    { clock: systemClock, limit: noLimit },
    (server) => listenAt(server, socket),
  );
  const session = connect("http://localhost", { createConnection: () => createConnection(socket) });
  const request = session.request({
    ":method": "POST",
    ":path": getInfo,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  let grpcStatus: unknown;
  request.on("trailers", (trailers) => (grpcStatus = trailers["grpc-status"]));
  request.end(emptyMessage);
  const [response] = (await once(request, "response")) as [Record<string, unknown>];
  request.resume();
  await once(request, "end");
  session.close();
  return [response[":status"], grpcStatus];
}

// grpc-go names the path that it dials, encoded, if the dialer is its caller's, as in clients of the pod-resources API.
for (const authority of ["localhost", "%2Fvar%2Flib%2Fkubelet.sock", "[", "x:y:z"]) {
  test(`a client may name the authority ${authority}`, async () => {
    assert.deepEqual(await statusesOf({ ":authority": authority }), [200, "0"]);
  });
}
