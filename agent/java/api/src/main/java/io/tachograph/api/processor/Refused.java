package io.tachograph.api.processor;

import javax.lang.model.element.Element;

/** An invalid declaration: the reason and the place in the source. */
final class Refused extends Exception {
    private static final long serialVersionUID = 1;

    final transient Element place;

    Refused(Element place, String message) {
        super(message);
        this.place = place;
    }
}
