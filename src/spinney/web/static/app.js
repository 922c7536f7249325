// The shell: which page an address shows, what it needs, and when it is drawn again.

import { h, render } from "./lib/dom.js";
import { ago, clock, exact } from "./lib/format.js";
import { icon } from "./lib/icons.js";
import { link } from "./lib/parts.js";
import { Store, ask, send } from "./lib/store.js";
import { evictions } from "./pages/evictions.js";
import { history } from "./pages/history.js";
import { login } from "./pages/login.js";
import { map } from "./pages/map.js";
import { overview } from "./pages/overview.js";
import { queues } from "./pages/queues.js";
import { waiting } from "./pages/waiting.js";
import { whatIf } from "./pages/whatif.js";
import { workload } from "./pages/workload.js";
import { workloads } from "./pages/workloads.js";

// A page has a title, what it needs ({tables, answers}), and a view.
const PAGES = { "": overview, map, workloads, queues, waiting, evictions, "what-if": whatIf, history, login };
const NAV = [["/", "Overview", "overview"], ["/map", "Cluster map", "map"], ["/workloads", "Workloads", "workloads"], ["/queues", "Queues", "queues"], ["/waiting", "Waiting", "waiting"], ["/evictions", "Evictions", "evictions"], ["/what-if", "What if", "what-if"], ["/history", "Time machine", "history"]];
const STATES = { connecting: "Connecting…", live: "Live", lost: "Connection lost, trying again…", past: "In the past" };

class App {
  constructor(root) {
    this.root = root;
    this.frame = 0;
    this.session = { login: "none", user: "" };
    this.store = new Store(() => this.redraw(), () => this.askLogin());
    this.state = {};
  }

  async start() {
    window.addEventListener("popstate", () => this.arrive());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    document.addEventListener("keydown", (event) => this.press(event));
    // Relative times move on by themselves.
    setInterval(() => this.redraw(), 5000);
    this.arrive();
    await this.learnSession();
  }

  async learnSession() {
    try {
      const { data } = await ask("/api/v1/session");
      this.session = data;
      this.store.skew = Date.parse(data.at) - Date.now();
    } catch (error) {
      if (error.status === 401) this.askLogin();
    }
    this.redraw();
  }

  /** Log in first; the view that was asked for comes afterwards. */
  askLogin() {
    if (this.page !== login) this.go(`/login?to=${encodeURIComponent(location.pathname + location.search)}`, true);
  }

  get now() {
    return this.store.now;
  }

  get past() {
    return this.query.get("at") || "";
  }

  arrive() {
    const before = this.parts ? this.parts.join("/") : null;
    this.parts = location.pathname.split("/").filter(Boolean).map(decodeURIComponent);
    this.query = new URLSearchParams(location.search);
    this.page = this.parts.length === 4 && this.parts[0] === "workloads" ? workload : PAGES[this.parts[0] || ""] || overview;
    const title = typeof this.page.title === "function" ? this.page.title(this) : this.page.title;
    document.title = `${title} · Spinney`;
    const { tables = [], answers = [] } = this.page.needs(this);
    this.store.need(tables, answers, this.page === login ? "" : this.past);
    if (before !== null && before !== this.parts.join("/")) {
      window.scrollTo(0, 0);
      this.announce = title;
    }
    this.redraw();
  }

  /** An address below which the chosen moment of the past stays chosen. */
  path(path) {
    return this.past ? `${path}${path.includes("?") ? "&" : "?"}at=${encodeURIComponent(this.past)}` : path;
  }

  go(path, replace = false) {
    if (path === location.pathname + location.search) return;
    window.history[replace ? "replaceState" : "pushState"](null, "", path);
    this.arrive();
  }

  /** Follow a link without loading the page anew, unless another tab or window is asked for. */
  follow(event, path) {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    this.go(path);
    document.getElementById("main")?.focus({ preventScroll: true });
  }

  /** A slash goes to the search of a page that has one. */
  press(event) {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select")) return;
    const field = document.querySelector("main input[type=search]");
    if (!field) return;
    event.preventDefault();
    field.focus();
  }

  /** Change some of the address's parameters; an empty value removes one. */
  setQuery(values, replace = true) {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(values)) {
      if (value === "" || value === null || value === undefined) query.delete(name);
      else query.set(name, value);
    }
    const text = query.toString();
    this.go(`${location.pathname}${text ? `?${text}` : ""}`, replace);
  }

  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    if (this.page === login) {
      render(this.root, login.view(this));
      return;
    }
    render(this.root, h("div", { class: "shell", key: "shell" },
      this.side(),
      h("main", { class: "main", id: "main", tabindex: "-1", key: "main" }, h("div", { class: this.page.fill ? "page fill" : "page", key: location.pathname }, this.pastNotice(), this.lostNotice(), this.page.view(this))),
      h("div", { class: "sr", role: "status", "aria-live": "polite" }, this.announce || "")));
    if (!performance.getEntriesByName("first-view").length) performance.mark("first-view");
  }

  /** Say that the page shows the past. */
  pastNotice() {
    if (!this.past || this.page === history) return null;
    return h("div", { class: "notice info row between", role: "note" },
      h("span", null, "This is the cluster at ", h("time", { datetime: this.past, title: exact(this.past) }, clock(this.past)), "."),
      h("span", { class: "row" }, link(this, this.path("/history"), "Another moment"), link(this, this.present(), "Back to now")));
  }

  /** Say that the page shows an earlier state because the connection is lost. */
  lostNotice() {
    const { connection, since } = this.store;
    if (connection !== "lost") return null;
    return h("div", { class: "notice bad", role: "note" }, `The connection was lost ${ago(new Date(since).toISOString(), Date.now())}. What is here was true then; the page goes on by itself.`);
  }

  /** The address of this view at the present. */
  present() {
    const query = new URLSearchParams(this.query);
    query.delete("at");
    return `${location.pathname}${query.size ? `?${query}` : ""}`;
  }

  side() {
    const current = `/${this.parts[0] || ""}`;
    return h("aside", { class: "side" },
      h("a", { class: "brand", href: "/", onClick: (event) => this.follow(event, this.path("/")) }, h("img", { src: "/static/icon.svg", alt: "" }), "Spinney"),
      h("nav", { class: "nav", "aria-label": "Pages" }, NAV.map(([path, text, picture]) =>
        h("a", { href: this.path(path), "aria-current": path === current ? "page" : undefined, onClick: (event) => this.follow(event, this.path(path)) }, icon(picture), text))),
      h("div", { class: "side-foot" },
        this.status(),
        this.session.user && h("span", { class: "hide-small" }, this.session.user),
        h("div", { class: "row" },
          h("button", { class: "button quiet", onClick: () => this.switchTheme(), "aria-label": "Switch between light and dark", title: "Switch between light and dark" }, icon("theme")),
          this.session.login === "token" && h("button", { class: "button quiet", onClick: () => this.logOut() }, "Log out"))));
  }

  status() {
    const { connection, since } = this.store;
    const text = connection === "past" ? `At ${clock(this.past)}` : STATES[connection];
    const title = connection === "lost" ? `Lost ${ago(new Date(since).toISOString(), Date.now())}; the page shows the last known state.` : "";
    return h("span", { class: `live is-${connection}`, role: "status", title },
      h("i", { "aria-hidden": "true" }), text,
      connection === "past" && link(this, this.present(), " now"));
  }

  switchTheme() {
    document.documentElement.dataset.theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    localStorage.setItem("theme", document.documentElement.dataset.theme);
    this.redraw();
  }

  async logOut() {
    await send("DELETE", "/api/v1/session", {});
    this.session = { login: "token", user: "" };
    this.store.close();
    this.go("/login");
  }
}

const app = new App(document.getElementById("app"));
render(app.root);
app.start();
