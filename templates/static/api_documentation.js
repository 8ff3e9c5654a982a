"use strict";

const page = document.getElementById("documentation");

SwaggerUIBundle({
  domNode: page,
  url: page.dataset.document,
  validatorUrl: null,
  docExpansion: "list",
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  // The session logs in; requests that change something prove that they come from this page.
  requestInterceptor: (request) => {
    if (new URL(request.url, document.baseURI).origin === location.origin) {
      request.headers["X-CSRFToken"] = page.dataset.csrfToken;
    }
    return request;
  },
});

document.getElementById("version").addEventListener("change", (event) => event.target.form.submit());
