import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** A metadata service's response: a string with status 200, undefined none at all. */
export type MetadataReply = string | { readonly status: number; readonly headers?: Record<string, string> } | undefined;

export interface MetadataServer extends AsyncDisposable {
  readonly url: string;
  /** Method and path of every request. */
  readonly requests: readonly string[];
  /** The current response. */
  reply: (request: IncomingMessage) => MetadataReply;
}

/** A metadata service on a local port. */
export async function startMetadataServer(reply: MetadataServer["reply"]): Promise<MetadataServer> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    const answer = started.reply(request);
    if (answer === undefined) return;
    const { status, headers = {} } = typeof answer === "string" ? { status: 200 } : answer;
    response.writeHead(status, { "Metadata-Flavor": "Google", ...headers });
    response.end(typeof answer === "string" ? answer : "");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const started: MetadataServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    reply,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return started;
}

/** An EC2 machine in its metadata service, version 2 only. */
export function ec2Machine(more: Readonly<Record<string, MetadataReply>> = {}): MetadataServer["reply"] {
  const texts: Readonly<Record<string, MetadataReply>> = {
    "instance-id": "i-0123456789abcdef0",
    "instance-type": "m7g.large",
    "placement/availability-zone": "eu-central-1b",
    "placement/region": "eu-central-1",
    "local-ipv4": "10.1.2.3",
    "public-ipv4": "198.51.100.7",
    "local-hostname": "ip-10-1-2-3.eu-central-1.compute.internal example.org",
    "public-hostname": "ec2-198-51-100-7.eu-central-1.compute.amazonaws.com",
    ...more,
  };
  return ({ method, url = "", headers }) => {
    if (method === "PUT" && url === "/latest/api/token") return "token";
    if (headers["x-aws-ec2-metadata-token"] !== "token") return { status: 401 };
    const name = url.replace("/latest/meta-data/", "");
    return Object.hasOwn(texts, name) ? texts[name] : { status: 404 };
  };
}
