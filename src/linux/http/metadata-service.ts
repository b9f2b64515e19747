import * as http from "node:http";
import type { MetadataAnswer, MetadataRequest, MetadataService } from "../../ports/metadata-service.ts";
import { readBody } from "./http-body.ts";

export const systemMetadataService: MetadataService = { ask };

async function ask({ method, url, headers, maxBytes, signal }: MetadataRequest): Promise<MetadataAnswer> {
  signal.throwIfAborted();
  // No keep-alive: the service is polled every few seconds, and may be replaced at any time.
  const agent = new http.Agent({ keepAlive: false });
  try {
    const outgoing = http.request(url, { method, agent, signal, headers: { "User-Agent": "podwright", ...headers } });
    const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
      outgoing.once("response", resolve);
      outgoing.on("error", reject);
      outgoing.end();
    });
    const tooLong = (): Error => new Error(`the response is longer than ${maxBytes} bytes`);
    const body = new Uint8Array(await readBody(response, maxBytes, tooLong));
    const received = Object.entries(response.headers).map(([name, value]) => [name, String(value ?? "")]);
    return { status: response.statusCode ?? 0, headers: Object.fromEntries(received) as Record<string, string>, body };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw error;
  } finally {
    agent.destroy();
  }
}
