import { type GrpcHealthAnswer, ProbeTargetError, probeUserAgent } from "../../ports/network-probes.ts";
import { encodeField, encodeFields } from "../../http2/hpack.ts";
import { Http2AnswerReader, http2Request } from "../http/http2-answer.ts";
import { StreamResetError } from "../../http2/errors.ts";
import { HttpSyntaxError } from "../../http2/syntax-error.ts";
import { varint } from "../../base/varint.ts";

/** grpc.health.v1.HealthCheckResponse.ServingStatus. */
const servingStatuses = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"] as const;

const maxMessageBytes = 10 * 1024;
const frameHeaderBytes = 5;

const sameHeaders = encodeFields({
  ":method": "POST",
  ":scheme": "http",
  ":path": "/grpc.health.v1.Health/Check",
  "content-type": "application/grpc",
  "user-agent": probeUserAgent,
  te: "trailers",
});

/**
 * Encodes one grpc.health.v1.Health/Check without TLS.
 * @throws RangeError when the service name is too long
 */
export function healthRequest(authority: string, service: string): Buffer {
  return http2Request(Buffer.concat([encodeField(":authority", authority), sameHeaders]), encodeRequest(service));
}

/** Reads the response to a {@link healthRequest} from its connection. */
export class HealthAnswerReader {
  readonly #http = new Http2AnswerReader(maxMessageBytes);

  /**
   * Returns the answer once it is complete. `chunk` may be reused afterwards.
   * @throws ProbeTargetError for an invalid one
   */
  push(chunk: Buffer): GrpcHealthAnswer | undefined {
    return asTargetError(() => {
      this.#http.push(chunk);
      const { isComplete, headers, trailers, body } = this.#http;
      if (!isComplete || headers === undefined) return undefined;
      // gRPC sends its status in the trailers, or in the headers when there is nothing else.
      return readAnswer(headers, trailers ?? headers, body);
    });
  }

  /**
   * Ends the connection.
   * @throws ProbeTargetError for an incomplete response
   */
  end(): undefined {
    asTargetError(() => this.#http.end());
  }

  /** Bytes to send back. */
  takeReplies(): Buffer | undefined {
    return this.#http.takeReplies();
  }
}

function asTargetError<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof HttpSyntaxError) throw new ProbeTargetError(`not gRPC: ${error.message}`, { cause: error });
    if (error instanceof StreamResetError) throw new ProbeTargetError(error.message, { cause: error });
    throw error;
  }
}

type Fields = ReadonlyMap<string, string>;

function readAnswer(headers: Fields, trailers: Fields, body: Uint8Array): GrpcHealthAnswer {
  const given = trailers.get("grpc-status");
  if (given === undefined) {
    throw new ProbeTargetError(`not gRPC: HTTP status ${headers.get(":status") ?? "missing"}`);
  }
  const code = Number(given);
  if (code !== 0) return { code, message: decodeMessage(trailers.get("grpc-message") ?? "") };
  return { code: 0, status: decodeStatus(body) };
}

/** gRPC percent-encodes its messages; a wrongly encoded one is shown unchanged. */
function decodeMessage(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A HealthCheckRequest {service = 1} in a gRPC frame: a flag, the length, the message. */
export function encodeRequest(service: string): Buffer {
  const name = Buffer.from(service);
  const field =
    name.length === 0 ? Buffer.alloc(0) : Buffer.concat([Buffer.from([0x0a, ...varint(name.length)]), name]);
  const header = Buffer.alloc(frameHeaderBytes);
  header.writeUInt32BE(field.length, 1);
  return Buffer.concat([header, field]);
}

/**
 * The `status` (field 1, an enum) of a framed HealthCheckResponse. Skips unknown fields.
 * @throws ProbeTargetError for an invalid message
 */
export function decodeStatus(frame: Uint8Array): string {
  const bytes = Buffer.from(frame);
  if (bytes.length < frameHeaderBytes || bytes.readUInt32BE(1) !== bytes.length - frameHeaderBytes) {
    throw new ProbeTargetError("the health check's response is truncated");
  }
  if (bytes[0] !== 0) throw new ProbeTargetError("the health check's response is compressed, which was not requested");
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
        throw new ProbeTargetError("the health check's response is not a protobuf message");
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
  throw new ProbeTargetError("the health check's response is not a protobuf message");
}
