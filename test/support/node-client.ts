import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request, type RequestOptions } from "node:https";

/**
 * A request to the kubelet's API of this machine; returns `<status> <text>`.
 * @param asked method and path: `GET /pods`
 * @param who credentials: a certificate or headers; default: none
 */
export async function askNode(
  port: number,
  asked: string,
  who: Pick<RequestOptions, "cert" | "key" | "headers">,
): Promise<string> {
  const [method = "", path = ""] = asked.split(" ");
  // Its certificate is self-signed: these tests are about client authentication.
  const outgoing = request({ host: "127.0.0.1", port, method, path, ...who, rejectUnauthorized: false, agent: false });
  outgoing.end();
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += String(chunk);
  return `${response.statusCode} ${text}`;
}
