// Log in with a token of the cluster.

import { h } from "../lib/dom.js";
import { send } from "../lib/store.js";

export const login = {
  title: "Log in",
  needs: () => ({}),
  view(app) {
    const state = (app.state.login ||= { error: "", busy: false });
    const submit = async (event) => {
      event.preventDefault();
      const field = event.currentTarget.elements.token;
      state.busy = true;
      state.error = "";
      app.redraw();
      try {
        await send("POST", "/api/v1/session", { token: field.value.trim() });
        field.value = "";
        await app.learnSession();
        const to = app.query.get("to") || "/";
        // An address of this site only.
        app.go(/^\/(?!\/)/.test(to) ? to : "/", true);
      } catch (error) {
        state.error = error.message;
      }
      state.busy = false;
      app.redraw();
    };
    return h("main", { class: "login card stack wide", id: "main", key: "login" },
      h("h1", null, "Log in to Spinney"),
      h("p", { class: "muted" }, "Paste a token of the cluster. You will see what it lets you list, and nothing else."),
      h("form", { class: "stack", onSubmit: submit },
        h("label", { for: "token" }, "Token"),
        h("textarea", { id: "token", name: "token", class: "field", required: true, autocomplete: "off", spellcheck: "false", "aria-describedby": "token-help" }),
        h("p", { class: "muted small", id: "token-help" }, "For example of ", h("code", null, "kubectl create token NAME"), "."),
        state.error && h("p", { class: "notice bad", role: "alert" }, state.error),
        h("button", { class: "button primary", disabled: state.busy }, state.busy ? "Checking…" : "Log in")));
  },
};
