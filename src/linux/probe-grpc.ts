import * as http2 from "node:http2";
import type { Socket } from "node:net";
import { onAbort } from "../base/abort.ts";
import { type GrpcHealthAnswer, ProbeTargetError, probeUserAgent } from "../ports/network-probes.ts";

/** grpc.health.v1.HealthCheckResponse.ServingStatus. */
const servingStatuses = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"] as const;

const maxMessageBytes = 10 * 1024;
const frameHeaderBytes = 5;

/**
 * One grpc.health.v1.Health/Check over an open connection, without TLS; the connection is reset afterwards.
 *
 * Written by hand over node:http2 rather than with the RPC library: the request has one text field and the response one
 * number, a probe wants a connection that nobody keeps or retries on, and 500 of them a second should stay cheap.
 */
export async function checkHealth(
  socket: Socket,
  authority: string,
  service: string,
  signal: AbortSignal,
): Promise<GrpcHealthAnswer> {
  const session = http2.connect(`http://${authority}`, { createConnection: () => socket });
  const { promise, resolve, reject } = Promise.withResolvers<GrpcHealthAnswer>();
  using _abort = onAbort(signal, () => reject(signal.reason));
  session.on("error", (error) => reject(new ProbeTargetError(`not gRPC: ${error.message}`, { cause: error })));
  let isOver = false;
  session.once("close", () => {
    if (!isOver) reject(new ProbeTargetError("the connection closed before the answer"));
  });
  try {
    const stream = session.request({
      ":method": "POST",
      ":path": "/grpc.health.v1.Health/Check",
      "content-type": "application/grpc",
      "user-agent": probeUserAgent,
      te: "trailers",
    });
    let status: http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader = {};
    let trailers: http2.IncomingHttpHeaders | undefined;
    let body: Uint8Array = new Uint8Array();
    stream.on("error", (error) => reject(new ProbeTargetError(error.message, { cause: error })));
    stream.once("response", (headers) => (status = headers));
    stream.once("trailers", (headers) => (trailers = headers));
    stream.on("data", (chunk: Buffer) => {
      body = Buffer.concat([body, chunk]);
      if (body.length > maxMessageBytes) reject(new ProbeTargetError("the answer is too long for a health check"));
    });
    // gRPC gives its own status in the trailers, or in the headers when there is nothing else.
    stream.once("end", () => settle(() => resolve(readAnswer(status, trailers ?? status, body)), reject));
    stream.end(encodeRequest(service));
    return await promise;
  } finally {
    isOver = true;
    // The session ends with its socket; the other way round it would be closed in order and stay in TIME_WAIT.
    socket.resetAndDestroy();
  }
}

function settle(work: () => void, reject: (error: unknown) => void): void {
  try {
    work();
  } catch (error) {
    reject(error);
  }
}

function readAnswer(
  headers: http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader,
  trailers: http2.IncomingHttpHeaders,
  body: Uint8Array,
): GrpcHealthAnswer {
  const given = trailers["grpc-status"];
  if (given === undefined) throw new ProbeTargetError(`not gRPC: HTTP status ${headers[":status"] ?? "missing"}`);
  const code = Number(given);
  if (code !== 0) return { code, message: decodeMessage(String(trailers["grpc-message"] ?? "")) };
  return { code: 0, status: decodeStatus(body) };
}

/** gRPC percent-encodes its messages; one that is encoded wrongly is shown as it came. */
function decodeMessage(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A HealthCheckRequest {service = 1} in a gRPC frame: a flag, the length, the message. */
export function encodeRequest(service: string): Uint8Array {
  const name = Buffer.from(service);
  const field = name.length === 0 ? Buffer.alloc(0) : Buffer.concat([Buffer.from([0x0a]), varint(name.length), name]);
  const header = Buffer.alloc(frameHeaderBytes);
  header.writeUInt32BE(field.length, 1);
  return Buffer.concat([header, field]);
}

/**
 * The `status` (field 1, an enum) of a framed HealthCheckResponse. Unknown fields are skipped.
 * @throws ProbeTargetError for anything that is none
 */
export function decodeStatus(frame: Uint8Array): string {
  const bytes = Buffer.from(frame);
  if (bytes.length < frameHeaderBytes || bytes.readUInt32BE(1) !== bytes.length - frameHeaderBytes) {
    throw new ProbeTargetError("the health check's answer is cut off");
  }
  if (bytes[0] !== 0) throw new ProbeTargetError("the health check's answer is compressed, which was not asked for");
  let status = 0;
  for (let at = frameHeaderBytes; at < bytes.length;) {
    const key = readVarint(bytes, at);
    const value = readVarint(bytes, key.end);
    switch (key.value & 7) {
      case 0:
        if (key.value >> 3 === 1) status = value.value;
        at = value.end;
        break;
      case 1:
        at = key.end + 8;
        break;
      case 2:
        at = value.end + value.value;
        break;
      case 5:
        at = key.end + 4;
        break;
      default:
        throw new ProbeTargetError("the health check's answer is no protobuf message");
    }
  }
  return servingStatuses[status] ?? String(status);
}

function readVarint(bytes: Uint8Array, from: number): { readonly value: number; readonly end: number } {
  let value = 0;
  for (let at = from, factor = 1; at < from + 10; at++, factor *= 128) {
    const byte = bytes[at] ?? 0;
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) return { value, end: at + 1 };
  }
  throw new ProbeTargetError("the health check's answer is no protobuf message");
}

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  return Uint8Array.from([...bytes, rest]);
}
