package io.tachograph.api.processor;

import io.tachograph.api.Record;

import java.io.IOException;
import java.io.Writer;
import java.util.Set;

import javax.annotation.processing.AbstractProcessor;
import javax.annotation.processing.RoundEnvironment;
import javax.annotation.processing.SupportedAnnotationTypes;
import javax.lang.model.SourceVersion;
import javax.lang.model.element.Element;
import javax.lang.model.element.TypeElement;
import javax.tools.Diagnostic;

/**
 * Generates a writer for each annotated interface or Java record, in the same package. An invalid
 * declaration is a compile error at its place in the source; other interfaces and Java records are
 * still processed.
 *
 * <p>{@link Declarations} reads the declarations, {@link WriterSource} writes the source.
 */
@SupportedAnnotationTypes("io.tachograph.api.Record")
public final class RecordProcessor extends AbstractProcessor {
    @Override
    public SourceVersion getSupportedSourceVersion() {
        return SourceVersion.latestSupported();
    }

    @Override
    public boolean process(Set<? extends TypeElement> annotations, RoundEnvironment round) {
        Declarations declarations = new Declarations(processingEnv.getElementUtils());
        for (Element element : round.getElementsAnnotatedWith(Record.class)) {
            try {
                if (element instanceof TypeElement) {
                    write(declarations.source((TypeElement) element), element);
                } else {
                    declarations.checkMethod(element);
                }
            } catch (Refused e) {
                say(e.getMessage(), e.place);
            } catch (IOException e) {
                say("cannot write the source of the record writer: " + e.getMessage(), element);
            }
        }
        return true;
    }

    private void write(WriterSource source, Element origin) throws IOException {
        try (Writer out =
                processingEnv.getFiler().createSourceFile(source.className(), origin).openWriter()) {
            out.write(source.text());
        }
    }

    private void say(String message, Element place) {
        processingEnv.getMessager().printMessage(Diagnostic.Kind.ERROR, message, place);
    }
}
