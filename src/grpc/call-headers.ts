import { encodeField, encodeFields } from "../http2/hpack.ts";

/**
 * Go's gRPC refuses an empty `:authority`; its value means nothing on a Unix socket. The content type is gRPC's own name,
 * which means protobuf. Servers that detect the protocol by the first header (CRI-O's) do not recognise
 * `application/grpc+proto` and hang up.
 */
const pseudo = encodeFields({ ":method": "POST", ":scheme": "http", ":authority": "localhost" });
const regular = encodeFields({ "content-type": "application/grpc", te: "trailers", "user-agent": "podwright" });

/** Those of each method: there are a few dozen. */
const ofMethods = new Map<string, Buffer>();

/**
 * The header block of a call (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).
 * @param path `/service/method`
 * @param timeout `grpc-timeout`; undefined: none
 */
export function callHeaders(path: string, timeout: string | undefined): Buffer {
  const ofMethod = ofMethods.get(path) ?? kept(Buffer.concat([pseudo, encodeField(":path", path), regular]));
  ofMethods.set(path, ofMethod);
  return timeout === undefined ? ofMethod : Buffer.concat([ofMethod, encodeField("grpc-timeout", timeout)]);
}

/** In memory of its own: a small buffer is a part of a large one, which it would keep. */
function kept(bytes: Buffer): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}
